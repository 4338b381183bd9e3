/* A task says what a node is to do with a row, and which side the row came from. */

/* Returns the side of a join's partners. */
static inline i64 opposite_of(i64 side) { return side == LEFT ? RIGHT : LEFT; }

static inline int goes_on_stored(i64 task) { return task == GO_ON_STORED_LEFT || task == GO_ON_STORED_RIGHT; }

static inline int goes_on(i64 task) { return goes_on_stored(task) || task == GO_ON_LEFT || task == GO_ON_RIGHT; }

/* Returns the task of a row that goes on at a goal; `stored` says that it is a goal itself. */
static inline i64 task_to_go_on(i64 side, int stored) {
  if (stored) return side == LEFT ? GO_ON_STORED_LEFT : GO_ON_STORED_RIGHT;
  return side == LEFT ? GO_ON_LEFT : GO_ON_RIGHT;
}

/* Returns the task of a row that waits for the close of the instant. */
static inline i64 task_to_decide(i64 side) { return side == LEFT ? DECIDE_LEFT : side == RIGHT ? DECIDE_RIGHT : DECIDE_BLOCKER; }

/* Returns the side that a task's row came from. */
static inline i64 side_of(i64 task) {
  if (task == BLOCKER || task == DECIDE_BLOCKER) return BLOCKER;
  return task == RIGHT || task == GO_ON_RIGHT || task == GO_ON_STORED_RIGHT || task == DECIDE_RIGHT ? RIGHT : LEFT;
}

/* Returns whether a task is one of the close of an instant. */
static inline int decides(i64 task) { return DECIDE_LEFT <= task && task < TASKS_OF_CLOSE; }

/* Returns a number that is greater for a later phase of a policy's node; to decide by a side is the first one. */
static inline i64 phase_of(i64 task) { return greater(task, DECIDE_BLOCKER); }

/* Returns whether a task's row is a stored goal, which its store frees. */
static inline int holds_goal(i64 task) {
  int of_policy = task == ORDER || task == LEFT_CHOICE || task == SERVE || task == SETTLE || task == SETTLE_RIGHT || task == YOUNGEST;
  return of_policy || goes_on_stored(task) || task == LOOK_ON_STORED;
}

/* Returns how long a node keeps goals of a side. */
static inline i64 life_of(const NodesRecord *node, i64 side) {
  return side == LEFT ? node->life_left : side == RIGHT ? node->life_right : node->life_blocker;
}

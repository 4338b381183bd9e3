/* The module for Python: each entry becomes a function, all by one way of calling. engine/native/entries.pyi has their types and what they do. */
#include "entry.h"
#include "stable_abi.h"
#include <stdlib.h>
#include <string.h>

#define JOINED(a, b) a##b
#define INITIALIZER(name) JOINED(PyInit_, name)
#define QUOTED(name) #name
#define TEXT_OF(name) QUOTED(name)

static const Entry *const UNITS[] = {common_entries, formats_entries, dictionary_entries, aggregation_entries, kernel_entries};

typedef struct { /* the arguments of one call, with the buffers that are held until it ends */
  Argument values[MOST_ARGUMENTS];
  Py_buffer buffers[MOST_ARGUMENTS];
  int held;
} Call;

static Py_ssize_t bytes_of(char letter) {
  switch (letter | 0x20) {
  case 'b': return 1;
  case 's': return 2;
  case 'i': return 4;
  default: return 8;
  }
}

static int take_view(Call *call, const Entry *entry, int k, PyObject *from) {
  char letter = entry->takes[k];
  Py_buffer *buffer = &call->buffers[call->held];
  if (PyObject_GetBuffer(from, buffer, PyBUF_C_CONTIGUOUS | (letter & 0x20 ? 0 : PyBUF_WRITABLE))) return 0;
  call->held++;
  if (buffer->itemsize != bytes_of(letter)) {
    PyErr_Format(PyExc_TypeError, "%s: argument %d has items of %zd bytes, and needs %zd", entry->name, k + 1, buffer->itemsize, bytes_of(letter));
    return 0;
  }
  i64 count = buffer->len / buffer->itemsize;
  call->values[k].view = (View){buffer->buf, count, buffer->ndim > 1 ? (i64)buffer->shape[buffer->ndim - 1] : count};
  return 1;
}

static int take_argument(Call *call, const Entry *entry, int k, PyObject *from) {
  switch (entry->takes[k]) {
  case 'n': return (call->values[k].number = PyLong_AsLongLong(from)) != -1 || !PyErr_Occurred();
  case 'u': return (call->values[k].word = PyLong_AsUnsignedLongLongMask(from)) != UINT64_MAX || !PyErr_Occurred();
  case 'x': return (call->values[k].real = PyFloat_AsDouble(from)) != -1.0 || !PyErr_Occurred();
  default: return take_view(call, entry, k, from);
  }
}

static PyObject *given(const Entry *entry, const i64 *results) {
  if (entry->gives == 1) return PyLong_FromLongLong(results[0]);
  if (entry->gives == 0) {
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
  }
  PyObject *tuple = PyTuple_New(entry->gives);
  for (int k = 0; tuple != NULL && k < entry->gives; k++) {
    PyObject *number = PyLong_FromLongLong(results[k]);
    if (number == NULL || PyTuple_SetItem(tuple, k, number)) {
      Py_DecRef(tuple);
      return NULL;
    }
  }
  return tuple;
}

static PyObject *work(const Entry *entry, const Call *call) {
  i64 results[MOST_RESULTS] = {0};
  PyThreadState *state = PyEval_SaveThread();
  int status = entry->call(call->values, results);
  PyEval_RestoreThread(state);
  switch (status) {
  case FINE: return given(entry, results);
  case NO_MEMORY: return PyErr_Format(PyExc_MemoryError, "%s: there is no memory left", entry->name);
  default: return PyErr_Format(PyExc_IndexError, "%s: an array is too short for what another one names", entry->name);
  }
}

static PyObject *call_entry(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
  const Entry *entry = PyCapsule_GetPointer(self, NULL);
  if (entry == NULL) return NULL;
  int wanted = (int)strlen(entry->takes), k = 0;
  if (count != wanted) return PyErr_Format(PyExc_TypeError, "%s takes %d arguments, and was given %zd", entry->name, wanted, count);
  Call call;
  call.held = 0;
  while (k < wanted && take_argument(&call, entry, k, arguments[k])) k++;
  PyObject *found = k == wanted ? work(entry, &call) : NULL;
  while (call.held > 0) PyBuffer_Release(&call.buffers[--call.held]);
  return found;
}

static int add_entry(PyObject *module, const Entry *entry) {
  PyMethodDef *method = malloc(sizeof *method); /* lives as long as the process */
  if (method == NULL) return 0;
  *method = (PyMethodDef){entry->name, call_entry, METH_FASTCALL, NULL};
  PyObject *self = PyCapsule_New((void *)entry, NULL, NULL);
  PyObject *function = self == NULL ? NULL : PyCFunction_NewEx(method, self, NULL);
  if (self != NULL) Py_DecRef(self);
  if (function == NULL) return 0;
  int added = PyModule_AddObjectRef(module, entry->name, function) == 0;
  Py_DecRef(function);
  return added;
}

EXPORTED PyObject *INITIALIZER(MODULE)(void) {
  static PyModuleDef definition = {.m_base = {.references = 1}, .m_name = TEXT_OF(MODULE), .m_size = -1};
  PyObject *module = PyModule_Create2(&definition, ABI_VERSION);
  for (size_t unit = 0; module != NULL && unit < sizeof UNITS / sizeof *UNITS; unit++)
    for (const Entry *entry = UNITS[unit]; entry->name[0]; entry++)
      if (!add_entry(module, entry)) {
        Py_DecRef(module);
        return NULL;
      }
  return module;
}

import java.io.BufferedReader;
import java.io.FileReader;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.util.Collector;

/** Runs a workload of docs/benchmarks.md with Flink CEP over the events of a file, in one task, several times. Prints a line for each pass. */
public class FlinkBench {
    /** An event. Flink's own serializer takes classes with public fields. */
    public static class Event {
        public String type;
        public long id;
        public double x;
        public long ts;

        public Event() {}
    }

    static List<Event> events = new ArrayList<>();
    static final AtomicLong matches = new AtomicLong();
    static volatile long began, ended;

    /** Emits all events, in order. */
    public static class Emitting implements SourceFunction<Event> {
        @Override
        public void run(SourceContext<Event> context) {
            began = System.nanoTime();
            for (Event each : events) {
                context.collect(each);
            }
        }

        @Override
        public void cancel() {}
    }

    /** Counts the matches. Nothing goes on to a sink, which would copy them. */
    public static class Counting extends PatternProcessFunction<Event, Long> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Long> out) {
            matches.incrementAndGet();
        }

        @Override
        public void close() {
            ended = System.nanoTime();
        }
    }

    static SimpleCondition<Event> of(String types) {
        return SimpleCondition.of(each -> types.contains(each.type));
    }

    /** Accepts an event of a type whose value is more than 1.05 times that of an earlier part. */
    public static class Rising extends IterativeCondition<Event> {
        final String type, before;

        Rising(String type, String before) {
            this.type = type;
            this.before = before;
        }

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            if (!event.type.equals(type)) {
                return false;
            }
            for (Event earlier : context.getEventsForPattern(before)) {
                if (!(earlier.x * 1.05 < event.x)) {
                    return false;
                }
            }
            return true;
        }
    }

    static Pattern<Event, ?> patternOf(String workload) {
        Pattern<Event, Event> first = Pattern.<Event>begin("a").where(of("a"));
        Pattern<Event, ?> found =
                switch (workload) {
                    case "W1" -> first.followedByAny("b").where(of("b")).followedByAny("c").where(of("c"));
                    case "W2" -> first.notFollowedBy("c").where(of("c")).followedByAny("b").where(of("b"));
                    case "W3" -> first.followedByAny("b").where(new Rising("b", "a")).followedByAny("c").where(new Rising("c", "b"));
                    case "W4" -> first.followedByAny("b").where(of("bc"));
                    default -> throw new IllegalArgumentException(workload);
                };
        return found.within(Duration.ofSeconds(10));
    }

    public static void main(String[] given) throws Exception {
        try (BufferedReader lines = new BufferedReader(new FileReader(given[0]))) {
            lines.readLine();
            for (String line; (line = lines.readLine()) != null; ) {
                String[] parts = line.split(",");
                Event event = new Event();
                event.type = parts[1];
                event.id = Long.parseLong(parts[2]);
                event.x = Double.parseDouble(parts[3]);
                event.ts = Long.parseLong(parts[4]);
                events.add(event);
            }
        }
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (int pass = 1; pass <= Integer.parseInt(given[2]); pass++) {
            StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
            environment.getConfig().enableObjectReuse();
            matches.set(0);
            DataStream<Event> stream =
                    environment
                            .addSource(new Emitting(), "events", TypeInformation.of(Event.class))
                            .assignTimestampsAndWatermarks(
                                    WatermarkStrategy.<Event>forMonotonousTimestamps().withTimestampAssigner((each, at) -> each.ts));
            CEP.pattern(stream.keyBy(each -> each.id), patternOf(given[1])).process(new Counting()).sinkTo(new DiscardingSink<>());
            double cpu = system.getProcessCpuTime() / 1e9;
            environment.execute();
            double used = system.getProcessCpuTime() / 1e9 - cpu, wall = (ended - began) / 1e9;
            System.out.printf(
                    "RESULT flink %s pass=%d events=%d matches=%d wall=%.3f ev/s=%.0f cpu=%.2f%n",
                    given[1], pass, events.size(), matches.get(), wall, events.size() / wall, used);
        }
    }
}

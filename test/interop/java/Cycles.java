import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import org.yaml.snakeyaml.Yaml;

/**
 * What bench/lockers/foreign.ts says that a program of the bench is told and answers: threads that lock and unlock, over
 * and over.
 */
final class Cycles {
  /** Opens the library at the `address` of its part. */
  interface Library {
    Locks open(Map<String, Object> part) throws Exception;
  }

  /** Gives each thread the lock of its key. */
  interface Locks {
    Lock of(String key);
  }

  /** The lock of one thread, waited for as long as it takes. */
  interface Lock {
    void acquire() throws Exception;

    void release() throws Exception;
  }

  private final Locks locks;
  private final List<?> keys;
  private final int tasks;
  private final FileChannel guarded;
  private final long holder;

  private Cycles(Locks locks, Map<String, Object> part) throws Exception {
    this.locks = locks;
    keys = (List<?>) part.get("keys");
    tasks = ((Number) part.get("tasks")).intValue();
    String path = (String) part.get("guarded");
    guarded = path == null ? null : new RandomAccessFile(path, "rw").getChannel();
    holder = ((Number) part.get("holder")).longValue();
  }

  /** Answers until the input ends, and ends the program then, whatever its threads wait for. */
  static void answer(String[] arguments, Library library) {
    try {
      // JSON is YAML, too.
      Map<String, Object> part = new Yaml().load(arguments[0]);
      Cycles cycles = new Cycles(library.open(part), part);
      BlockingQueue<String[]> orders = new LinkedBlockingQueue<>();
      Thread thread = new Thread(() -> cycles.carryOut(orders));
      thread.setDaemon(true);
      thread.start();
      say("ready\n");
      try (var input = new BufferedReader(new InputStreamReader(System.in))) {
        for (String line = input.readLine(); line != null; line = input.readLine()) {
          orders.put(line.split(" "));
        }
      }
      Runtime.getRuntime().halt(0);
    } catch (Throwable error) {
      fail(error);
    }
  }

  private void carryOut(BlockingQueue<String[]> orders) {
    try {
      while (true) {
        String[] words = orders.take();
        say(perform(Double.parseDouble(words[1]), Double.parseDouble(words[2])));
      }
    } catch (Throwable error) {
      fail(error);
    }
  }

  /** What one thread did. */
  private static final class Log {
    final DoubleStream.Builder waits = DoubleStream.builder();
    final DoubleStream.Builder requested = DoubleStream.builder();
    long operations;
    String broken;
  }

  private String perform(double from, double until) throws Exception {
    List<Log> logs = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int task = 0; task < tasks; task++) {
      Log log = new Log();
      logs.add(log);
      Lock lock = locks.of((String) keys.get(task % keys.size()));
      Thread thread = new Thread(() -> work(lock, from, until, log));
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) thread.join();
    StringBuilder answer = new StringBuilder();
    long operations = 0;
    for (Log log : logs) {
      if (log.broken != null) answer.append("broken ").append(log.broken).append('\n');
      answer.append(line("waits", log.waits)).append(line("requested", log.requested));
      operations += log.operations;
    }
    return answer.append("performed ").append(operations).append('\n').toString();
  }

  private static String line(String what, DoubleStream.Builder values) {
    return Arrays.stream(values.build().toArray())
        .mapToObj(value -> " " + value)
        .collect(Collectors.joining("", what, "\n"));
  }

  private void work(Lock lock, double from, double until, Log log) {
    try {
      while (now() < from) Thread.sleep(1);
      for (double since = now(); since < until; since = now()) {
        lock.acquire();
        log.requested.add(since);
        log.waits.add(now() - since);
        if (guarded != null) enter(log);
        if (guarded != null) leave(log);
        lock.release();
        if (now() <= until) log.operations++;
      }
    } catch (Throwable error) {
      // Others may wait in vain for what this one holds.
      fail(error);
    }
  }

  private void enter(Log log) throws Exception {
    long before = inside();
    write(holder);
    if (before != 0) log.broken = "process " + before + " was inside when process " + holder + " came in";
  }

  private void leave(Log log) throws Exception {
    long now = inside();
    write(0);
    if (now != holder) log.broken = "process " + now + " came in while process " + holder + " was inside";
  }

  private long inside() throws Exception {
    ByteBuffer field = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder());
    guarded.read(field, 0);
    return field.getLong(0);
  }

  private void write(long value) throws Exception {
    guarded.write(ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder()).putLong(0, value), 0);
  }

  /** The monotonic clock of the machine: milliseconds. */
  private static double now() {
    return System.nanoTime() / 1e6;
  }

  private static synchronized void say(String lines) {
    System.out.print(lines);
    System.out.flush();
  }

  private static void fail(Throwable error) {
    say("failed " + error.toString().replace('\n', ' ') + "\n");
    Runtime.getRuntime().halt(1);
  }
}

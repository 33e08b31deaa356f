import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;
import org.yaml.snakeyaml.Yaml;

/**
 * Curator's InterProcessMutex in the bench: threads that lock and unlock, over and over. Told as JSON in its only argument
 * are the server's `address`, the `keys` (a thread each, or all threads the same), the number of `tasks`, and the file
 * that is `guarded` with the number of this process as `holder`, where exclusion is checked.
 *
 * `perform FROM UNTIL` on standard input, in milliseconds of the monotonic clock, is answered by a line each with what was
 * `broken`, the `waits`, when they began (`requested`), and how often the threads `performed`.
 */
public final class CuratorCycles {
  /** Long enough for the virtual machine to have compiled what counts: milliseconds. */
  private static final double WARM_UP = 3000;

  private final CuratorFramework client;
  private final List<?> keys;
  private final int tasks;
  private final FileChannel guarded;
  private final long holder;

  private CuratorCycles(Map<String, Object> part) throws Exception {
    client = CuratorFrameworkFactory.newClient((String) part.get("address"), new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    keys = (List<?>) part.get("keys");
    tasks = ((Number) part.get("tasks")).intValue();
    String path = (String) part.get("guarded");
    guarded = path == null ? null : new RandomAccessFile(path, "rw").getChannel();
    holder = ((Number) part.get("holder")).longValue();
  }

  public static void main(String[] arguments) throws Exception {
    // JSON is YAML, too.
    CuratorCycles cycles = new CuratorCycles(new Yaml().load(arguments[0]));
    double start = now();
    cycles.perform(start, start + WARM_UP);
    System.out.println("ready");
    try (var input = new BufferedReader(new InputStreamReader(System.in))) {
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        String[] words = line.split(" ");
        System.out.print(cycles.perform(Double.parseDouble(words[1]), Double.parseDouble(words[2])));
        System.out.flush();
      }
    }
    cycles.client.close();
    System.exit(0);
  }

  /** What one thread did. */
  private static final class Log {
    final StringBuilder waits = new StringBuilder("waits");
    final StringBuilder requested = new StringBuilder("requested");
    long operations;
    String broken;
  }

  private String perform(double from, double until) throws Exception {
    List<Log> logs = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int task = 0; task < tasks; task++) {
      Log log = new Log();
      logs.add(log);
      String path = "/" + keys.get(task % keys.size());
      Thread thread = new Thread(() -> work(new InterProcessMutex(client, path), from, until, log));
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) thread.join();
    StringBuilder answer = new StringBuilder();
    long operations = 0;
    for (Log log : logs) {
      if (log.broken != null) answer.append("broken ").append(log.broken).append('\n');
      answer.append(log.waits).append('\n').append(log.requested).append('\n');
      operations += log.operations;
    }
    return answer.append("performed ").append(operations).append('\n').toString();
  }

  private void work(InterProcessMutex mutex, double from, double until, Log log) {
    try {
      while (now() < from) Thread.sleep(1);
      for (double since = now(); since < until; since = now()) {
        mutex.acquire();
        log.requested.append(' ').append(since);
        log.waits.append(' ').append(now() - since);
        if (guarded != null) enter(log);
        if (guarded != null) leave(log);
        mutex.release();
        if (now() <= until) log.operations++;
      }
    } catch (Exception error) {
      log.broken = error.toString().replace('\n', ' ');
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
}

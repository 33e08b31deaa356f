import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;

/**
 * What rounds.ts says that such a program is told and answers. A lock belongs to a thread in Java, so one thread carries
 * out everything in turn.
 */
final class Rounds {
  /** The lock of one client. */
  interface Lock {
    /** Whether it was got within so many milliseconds. */
    boolean acquire(long wait) throws Exception;

    /** False when it was lost before. */
    boolean release() throws Exception;
  }

  private static final long PATIENCE = 5000;

  private static volatile boolean going;

  private final Lock lock;
  private final Map<String, Object> part;

  private Rounds(Lock lock, Map<String, Object> part) {
    this.lock = lock;
    this.part = part;
  }

  /** Answers until the input ends, and ends the program then. */
  static void answer(Lock lock, Map<String, Object> part) throws Exception {
    Rounds rounds = new Rounds(lock, part);
    BlockingQueue<String[]> orders = new LinkedBlockingQueue<String[]>();
    Thread thread = new Thread(() -> rounds.work(orders));
    thread.setDaemon(true);
    thread.start();
    say("ready");
    try (var input = new BufferedReader(new InputStreamReader(System.in))) {
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        String[] words = line.split(" ");
        if (words[0].equals("stop")) {
          going = false;
          continue;
        }
        if (words[0].equals("rounds")) going = true;
        orders.put(words);
      }
    }
    System.exit(0);
  }

  static long number(Object value) {
    return ((Number) value).longValue();
  }

  private void work(BlockingQueue<String[]> orders) {
    while (true) {
      try {
        carryOut(orders.take());
      } catch (Exception error) {
        say("failed " + error.toString().replace('\n', ' '));
      }
    }
  }

  private void carryOut(String[] words) throws Exception {
    switch (words[0]) {
      case "acquire" -> say(lock.acquire(Long.parseLong(words[1])) ? "held" : "busy");
      case "release" -> say(lock.release() ? "released" : "lost");
      case "rounds" -> {
        while (going) round();
        say("stopped");
      }
      default -> { }
    }
  }

  private void round() throws Exception {
    boolean excludes = (Boolean) part.get("excludes");
    if (excludes && !lock.acquire(PATIENCE)) return;
    long from = System.nanoTime();
    Thread.sleep(number(part.get("hold")));
    long to = System.nanoTime();
    if (excludes) lock.release();
    say("inside " + from + " " + to);
    Thread.sleep(ThreadLocalRandom.current().nextLong(number(part.get("pause")) + 1));
  }

  private static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}

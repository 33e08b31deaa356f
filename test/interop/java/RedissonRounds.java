import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.yaml.snakeyaml.Yaml;

/**
 * Redisson's locks, as rounds.ts says what such a program is told and what it answers. A second argument `fair` makes it
 * use RFairLock. A lock belongs to a thread there, so one thread carries out everything in turn.
 */
public final class RedissonRounds {
  private static final long PATIENCE = 5000;

  private static volatile boolean going;

  private final RLock lock;
  private final Map<String, Object> part;

  private RedissonRounds(RLock lock, Map<String, Object> part) {
    this.lock = lock;
    this.part = part;
  }

  public static void main(String[] arguments) throws Exception {
    // JSON is YAML, too, which Redisson brings a reader for.
    Map<String, Object> part = new Yaml().load(arguments[0]);
    boolean fair = arguments.length > 1 && arguments[1].equals("fair");
    Config config = new Config();
    config.setLockWatchdogTimeout(number(part.get("lease")));
    config.useSingleServer().setAddress((String) part.get("url")).setConnectionMinimumIdleSize(1);
    RedissonClient client = Redisson.create(config);
    String name = (String) part.get("name");
    RedissonRounds rounds = new RedissonRounds(fair ? client.getFairLock(name) : client.getLock(name), part);
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

  private void work(BlockingQueue<String[]> orders) {
    while (true) {
      try {
        carryOut(orders.take());
      } catch (Exception error) {
        say("failed " + error.toString().replace('\n', ' '));
      }
    }
  }

  private void carryOut(String[] words) throws InterruptedException {
    switch (words[0]) {
      case "acquire" -> say(acquire(Long.parseLong(words[1])) ? "held" : "busy");
      case "release" -> say(release() ? "released" : "lost");
      case "rounds" -> {
        while (going) round();
        say("stopped");
      }
      default -> { }
    }
  }

  private boolean acquire(long wait) throws InterruptedException {
    // A lease of -1 is the watchdog's, which renews it.
    long lease = (Boolean) part.get("renew") ? -1 : number(part.get("lease"));
    return lock.tryLock(wait, lease, TimeUnit.MILLISECONDS);
  }

  private boolean release() {
    try {
      lock.unlock();
      return true;
    } catch (IllegalMonitorStateException notHeld) {
      return false;
    }
  }

  private void round() throws InterruptedException {
    boolean excludes = (Boolean) part.get("excludes");
    if (excludes && !acquire(PATIENCE)) return;
    long from = System.nanoTime();
    Thread.sleep(number(part.get("hold")));
    long to = System.nanoTime();
    if (excludes) release();
    say("inside " + from + " " + to);
    Thread.sleep(ThreadLocalRandom.current().nextLong(number(part.get("pause")) + 1));
  }

  private static long number(Object value) {
    return ((Number) value).longValue();
  }

  private static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}

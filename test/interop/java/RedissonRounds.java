import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.yaml.snakeyaml.Yaml;

/** Redisson's locks; a second argument `fair` makes it use RFairLock. */
public final class RedissonRounds implements Rounds.Lock {
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
    config.setLockWatchdogTimeout(Rounds.number(part.get("lease")));
    config.useSingleServer().setAddress((String) part.get("url")).setConnectionMinimumIdleSize(1);
    RedissonClient client = Redisson.create(config);
    String name = (String) part.get("name");
    Rounds.answer(new RedissonRounds(fair ? client.getFairLock(name) : client.getLock(name), part), part);
  }

  @Override
  public boolean acquire(long wait) throws InterruptedException {
    // A lease of -1 is the watchdog's, which renews it.
    long lease = (Boolean) part.get("renew") ? -1 : Rounds.number(part.get("lease"));
    return lock.tryLock(wait, lease, TimeUnit.MILLISECONDS);
  }

  @Override
  public boolean release() {
    try {
      lock.unlock();
      return true;
    } catch (IllegalMonitorStateException notHeld) {
      return false;
    }
  }
}

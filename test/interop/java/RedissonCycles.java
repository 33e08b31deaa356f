import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's locks in the bench, with its own settings; a second argument `fair` makes it use RFairLock. */
public final class RedissonCycles implements Cycles.Lock {
  private final RLock lock;

  private RedissonCycles(RLock lock) {
    this.lock = lock;
  }

  public static void main(String[] arguments) {
    boolean fair = arguments.length > 1 && arguments[1].equals("fair");
    Cycles.answer(arguments, part -> {
      Config config = new Config();
      config.useSingleServer().setAddress((String) part.get("address"));
      RedissonClient client = Redisson.create(config);
      return key -> new RedissonCycles(fair ? client.getFairLock(key) : client.getLock(key));
    });
  }

  @Override
  public void acquire() {
    lock.lock();
  }

  @Override
  public void release() {
    lock.unlock();
  }
}

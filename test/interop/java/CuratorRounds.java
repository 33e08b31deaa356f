import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;
import org.yaml.snakeyaml.Yaml;

/**
 * Curator's InterProcessMutex; or the side of its InterProcessReadWriteLock that is named behind the part. Its lease is its
 * session.
 */
public final class CuratorRounds implements Rounds.Lock {
  private final InterProcessMutex lock;

  private CuratorRounds(InterProcessMutex lock) {
    this.lock = lock;
  }

  public static void main(String[] arguments) throws Exception {
    // JSON is YAML, too.
    Map<String, Object> part = new Yaml().load(arguments[0]);
    CuratorFramework client =
        CuratorFrameworkFactory.newClient((String) part.get("url"), 20_000, 15_000, new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    String side = arguments.length > 1 ? arguments[1] : "mutex";
    Rounds.answer(new CuratorRounds(lock(client, (String) part.get("name"), side)), part);
  }

  private static InterProcessMutex lock(CuratorFramework client, String path, String side) {
    return switch (side) {
      case "mutex" -> new InterProcessMutex(client, path);
      case "read" -> new InterProcessReadWriteLock(client, path).readLock();
      case "write" -> new InterProcessReadWriteLock(client, path).writeLock();
      default -> throw new IllegalArgumentException(side);
    };
  }

  @Override
  public boolean acquire(long wait) throws Exception {
    return lock.acquire(wait, TimeUnit.MILLISECONDS);
  }

  @Override
  public boolean release() throws Exception {
    try {
      lock.release();
      return true;
    } catch (IllegalMonitorStateException notHeld) {
      return false;
    }
  }
}

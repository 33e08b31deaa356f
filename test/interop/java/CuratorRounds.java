import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;
import org.yaml.snakeyaml.Yaml;

/** Curator's InterProcessMutex. Its lease is its session. */
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
    Rounds.answer(new CuratorRounds(new InterProcessMutex(client, (String) part.get("name"))), part);
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

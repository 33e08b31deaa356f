import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/** Curator's InterProcessMutex in the bench. */
public final class CuratorCycles implements Cycles.Lock {
  private final InterProcessMutex mutex;

  private CuratorCycles(InterProcessMutex mutex) {
    this.mutex = mutex;
  }

  public static void main(String[] arguments) {
    Cycles.answer(arguments, part -> {
      CuratorFramework client =
          CuratorFrameworkFactory.newClient((String) part.get("address"), new RetryOneTime(100));
      client.start();
      client.blockUntilConnected();
      return key -> new CuratorCycles(new InterProcessMutex(client, "/" + key));
    });
  }

  @Override
  public void acquire() throws Exception {
    mutex.acquire();
  }

  @Override
  public void release() throws Exception {
    mutex.release();
  }
}

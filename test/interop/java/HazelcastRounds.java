import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.map.IMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.yaml.snakeyaml.Yaml;

/** The lock of a key of an IMap. */
public final class HazelcastRounds implements Rounds.Lock {
  private final IMap<String, String> map;
  private final String key;
  private final long lease;

  private HazelcastRounds(IMap<String, String> map, String key, long lease) {
    this.map = map;
    this.key = key;
    this.lease = lease;
  }

  public static void main(String[] arguments) throws Exception {
    // JSON is YAML, too.
    Map<String, Object> part = new Yaml().load(arguments[0]);
    // host:port/cluster/map
    String[] place = ((String) part.get("url")).split("/");
    ClientConfig config = new ClientConfig();
    config.setClusterName(place[1]);
    config.setProperty("hazelcast.logging.type", "none");
    config.getNetworkConfig().addAddress(place[0]);
    IMap<String, String> map = HazelcastClient.newHazelcastClient(config).getMap(place[2]);
    long lease = Rounds.number(part.get("lease"));
    Rounds.answer(new HazelcastRounds(map, (String) part.get("name"), lease), part);
  }

  @Override
  public boolean acquire(long wait) throws Exception {
    return map.tryLock(key, wait, TimeUnit.MILLISECONDS, lease, TimeUnit.MILLISECONDS);
  }

  @Override
  public boolean release() {
    try {
      map.unlock(key);
      return true;
    } catch (IllegalMonitorStateException notHeld) {
      return false;
    }
  }
}

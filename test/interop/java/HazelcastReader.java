import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.core.HazelcastJsonValue;
import com.hazelcast.map.IMap;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import org.yaml.snakeyaml.Yaml;

/**
 * Reads what Signalbox keeps in a store, and writes to a map of its own only with a token that is greater than the last one
 * it was given. Arguments: host:port, cluster, map. Orders come line by line, and each has one line as its answer.
 */
public final class HazelcastReader {
  private final IMap<String, HazelcastJsonValue> values;
  private final IMap<String, String> own;

  private HazelcastReader(HazelcastInstance client, String map) {
    values = client.getMap(map + ".values");
    own = client.getMap(map + ".of-java");
  }

  public static void main(String[] arguments) throws Exception {
    ClientConfig config = new ClientConfig();
    config.setClusterName(arguments[1]);
    config.setProperty("hazelcast.logging.type", "none");
    config.getNetworkConfig().addAddress(arguments[0]);
    HazelcastInstance client = HazelcastClient.newHazelcastClient(config);
    HazelcastReader reader = new HazelcastReader(client, arguments[2]);
    try (var input = new BufferedReader(new InputStreamReader(System.in))) {
      for (String line = input.readLine(); line != null; line = input.readLine())
        System.out.println(reader.answer(line.split(" ", 4)));
    }
    client.shutdown();
  }

  private String answer(String[] order) {
    switch (order[0]) {
      case "counts":
        return counts(order[1]);
      case "write":
        return write(order[1], Long.parseLong(order[2]), order[3]) ? "written" : "refused";
      default:
        throw new IllegalArgumentException(order[0]);
    }
  }

  /** What was created, deleted, arrived and departed at a location; "absent" when nothing is known of it. */
  private String counts(String location) {
    HazelcastJsonValue json = values.get("trains/LOC_" + location);
    // JSON is YAML, too.
    Map<String, Object> entry = json == null ? Map.of() : new Yaml().load(json.getValue());
    if (!entry.containsKey("value")) return "absent";
    Map<?, ?> counts = (Map<?, ?>) ((Map<?, ?>) entry.get("value")).get("value");
    return counts.get("created") + " " + counts.get("deleted") + " " + counts.get("arrived") + " " + counts.get("departed");
  }

  /** The token is kept in front of what is written, so that both change together or not at all. */
  private boolean write(String key, long token, String text) {
    String next = token + " " + text;
    while (true) {
      String before = own.get(key);
      if (before == null) {
        if (own.putIfAbsent(key, next) == null) return true;
      } else {
        if (token <= Long.parseLong(before.substring(0, before.indexOf(' ')))) return false;
        if (own.replace(key, before, next)) return true;
      }
    }
  }
}

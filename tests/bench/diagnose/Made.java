// A made program in Java: Made KIND SECONDS VARIANT. What leaks is of the types that begin with Leaked.
import java.util.*;
import java.util.function.IntSupplier;

public class Made {
  static class LeakedEntry { byte[] load = new byte[1000]; }
  static class LeakedNode { LeakedNode behind; byte[] load = new byte[1000]; LeakedNode(LeakedNode b) { behind = b; } }
  static class LeakedListener implements IntSupplier { int[] load = new int[250]; public int getAsInt() { return load.length; } }
  static class LeakedName { String name; LeakedName(String n) { name = n; } }
  static class LeakedPoint { double[] at = new double[120]; }
  static class LeakedSession { Map<String, Object> values = new HashMap<>(); }
  static class Cached { byte[] load; Cached(int size) { load = new byte[size]; } }
  static class Held { byte[] load = new byte[4000]; }

  static final List<Object> kept = new ArrayList<>();
  static final Map<String, Object> table = new HashMap<>();
  static final Cached[] cache = new Cached[1000];
  static LeakedNode chain;

  static void busy(int n) { for (int i = 0; i < 40; i++) cache[(n * 40 + i) % 1000] = new Cached(2000 + i); }

  static void leak(int variant, int n) {
    for (int i = 0; i < 20; i++) switch (variant % 6) {
      case 0 -> kept.add(new LeakedEntry());
      case 1 -> chain = new LeakedNode(chain);
      case 2 -> kept.add(new LeakedListener());
      case 3 -> table.put(n + "-" + i, new LeakedName("x".repeat(1000) + n));
      case 4 -> kept.add(new LeakedPoint());
      default -> { LeakedSession s = new LeakedSession(); s.values.put("load", new byte[800]); kept.add(s); }
    }
  }

  static void level(double mib) {
    int wanted = (int) (mib * 1048576) / 4000;
    while (kept.size() < wanted) kept.add(new Held());
    while (kept.size() > wanted) kept.remove(kept.size() - 1);
  }

  public static void main(String[] a) throws Exception {
    String kind = a[0];
    double seconds = Double.parseDouble(a[1]);
    int variant = Integer.parseInt(a[2]);
    long begin = System.nanoTime();
    for (int n = 1; ; n++) {
      double part = (System.nanoTime() - begin) * 1e-9 / seconds;
      if (part > 2) return;
      switch (kind) {
        case "leak" -> { busy(n); leak(variant, n); }
        case "cache" -> { busy(n); level(Math.min(part / 0.5, 1) * 16); }
        case "warm-up" -> { busy(n); level(16 * (1 - Math.exp(-part / 0.05))); }
        case "load" -> level(4 + 16 * (0.5 + 0.5 * Math.sin(2 * Math.PI * System.currentTimeMillis() / 1000.0 / seconds * 1.3)));
        default -> { // retention
          if (part < 0.35) for (int i = 0; i < 40; i++) kept.add(new Held());
          else kept.clear();
        }
      }
      Thread.sleep(20);
    }
  }
}

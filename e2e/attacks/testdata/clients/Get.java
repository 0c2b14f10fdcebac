import java.net.*;
public class Get {
  public static void main(String[] a) throws Exception {
    Authenticator.setDefault(new Authenticator() {
      protected PasswordAuthentication getPasswordAuthentication() {
        return new PasswordAuthentication("s", a[2].toCharArray());
      }
    });
    var proxy = new Proxy(Proxy.Type.HTTP, new InetSocketAddress(a[0], Integer.parseInt(a[1])));
    System.out.write(new URL("https://api.good.test/v1/items").openConnection(proxy).getInputStream().readAllBytes());
    System.out.flush();
  }
}

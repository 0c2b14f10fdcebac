import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

// Java's two HTTP clients: GET to standard output.
class Get {
    public static void main(String[] args) throws Exception {
        URI uri = URI.create(args[1]);
        int status;
        InputStream body;
        if (args[0].equals("URL")) {
            HttpURLConnection c = (HttpURLConnection) uri.toURL().openConnection();
            status = c.getResponseCode();
            body = status < 400 ? c.getInputStream() : c.getErrorStream();
        } else {
            HttpResponse<InputStream> r = HttpClient.newHttpClient().send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofInputStream());
            status = r.statusCode();
            body = r.body();
        }
        byte[] buf = new byte[65536];
        for (int n; (n = body.read(buf)) > 0; ) {
            System.out.write(buf, 0, n);
            System.out.flush();
        }
        if (status != 200) {
            System.err.println("status " + status);
            System.exit(1);
        }
    }
}

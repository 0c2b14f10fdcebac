# Ruby's net/http: GET to standard output.
require "net/http"
uri = URI(ARGV[0])
$stdout.sync = true
Net::HTTP.start(uri.host, uri.port, use_ssl: true) do |http|
  http.request(Net::HTTP::Get.new(uri)) do |res|
    res.read_body { |chunk| $stdout.write(chunk) }
    abort "status #{res.code}" unless res.code == "200"
  end
end

<?php
// PHP's two HTTP clients: GET to standard output.
[, $kind, $url] = $argv;
if ($kind === "curl") {
    $c = curl_init($url);
    curl_setopt($c, CURLOPT_USERAGENT, "matrix");
    curl_setopt($c, CURLOPT_FAILONERROR, true);
    curl_setopt($c, CURLOPT_WRITEFUNCTION, function ($c, $chunk) { fwrite(STDOUT, $chunk); return strlen($chunk); });
    if (!curl_exec($c)) {
        fwrite(STDERR, curl_error($c));
        exit(1);
    }
    exit(0);
}
$f = fopen($url, "r", false, stream_context_create(["http" => ["user_agent" => "matrix"]]));
if (!$f) {
    exit(1);
}
while (!feof($f)) {
    fwrite(STDOUT, fread($f, 1 << 16));
}

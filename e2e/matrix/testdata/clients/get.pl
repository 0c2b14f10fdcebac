# Perl's two HTTP clients: GET to standard output.
use strict;
use warnings;
my ($kind, $url) = @ARGV;
$| = 1;
if ($kind eq "LWP") {
    require LWP::UserAgent;
    # Proxy variables only count when a program asks for them.
    my $res = LWP::UserAgent->new(env_proxy => 1)->get($url, ":content_cb" => sub { print $_[0] }, ":read_size_hint" => 1 << 16);
    die $res->status_line . "\n" unless $res->code == 200 and not $res->header("X-Died");
} else {
    require HTTP::Tiny;
    my $res = HTTP::Tiny->new(verify_SSL => 1)->get($url, { data_callback => sub { print $_[0] } });
    die "$res->{status} $res->{content}\n" unless $res->{success};
}

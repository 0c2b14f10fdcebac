package protocol

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// serveGRPC runs grpc-go's interoperability server. It answers only
// the holder of the secret, and sends everyone the secret in a trailer.
func (s *server) serveGRPC() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.resolve[hostGRPC+":443"] = l.Addr().String()
	admit := func(ctx context.Context) error {
		md, _ := metadata.FromIncomingContext(ctx)
		if got := md.Get("authorization"); len(got) != 1 || got[0] != "Bearer "+secret {
			return status.Errorf(codes.Unauthenticated, "%d values of authorization, none of them right", len(got))
		}
		return nil
	}
	h := grpc.NewServer(grpc.Creds(credentials.NewTLS(s.tls)),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any,
			error) {
			if err := admit(ctx); err != nil {
				return nil, err
			}
			_ = grpc.SetTrailer(ctx, metadata.Pairs("x-seen", "Bearer "+secret))
			return next(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if err := admit(ss.Context()); err != nil {
				return err
			}
			ss.SetTrailer(metadata.Pairs("x-seen", "Bearer "+secret))
			err := next(srv, ss)
			if ss.Context().Err() != nil {
				s.gone.Add(1)
			}
			return err
		}))
	testgrpc.RegisterTestServiceServer(h, interop.NewTestServer())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.Serve(l) }()
	s.closers = append(s.closers, func() { h.Stop(); <-done })
	return nil
}

// interopCases are those of grpc-go's interop client that need no account at
// Google and no load balancer. A failing one ends its process.
var interopCases = map[string]func(context.Context, *grpc.ClientConn){
	"empty_unary": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoEmptyUnaryCall(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"large_unary": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoLargeUnaryCall(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"client_streaming": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoClientStreaming(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"server_streaming": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoServerStreaming(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"ping_pong": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoPingPong(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"empty_stream": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoEmptyStream(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"timeout_on_sleeping_server": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoTimeoutOnSleepingServer(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"cancel_after_begin": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoCancelAfterBegin(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"cancel_after_first_response": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoCancelAfterFirstResponse(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"status_code_and_message": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoStatusCodeAndMessage(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"special_status_message": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoSpecialStatusMessage(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"custom_metadata": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoCustomMetadata(ctx, testgrpc.NewTestServiceClient(cc))
	},
	"unimplemented_method": func(ctx context.Context, cc *grpc.ClientConn) { interop.DoUnimplementedMethod(ctx, cc) },
	"unimplemented_service": func(ctx context.Context, cc *grpc.ClientConn) {
		interop.DoUnimplementedService(ctx, testgrpc.NewUnimplementedServiceClient(cc))
	},
	// Ours: the trailer that contains the secret, and what a refusal looks like.
	"scrubbed_trailer": func(ctx context.Context, cc *grpc.ClientConn) {
		var trailer metadata.MD
		if _, err := testgrpc.NewTestServiceClient(cc).EmptyCall(ctx, &testgrpc.Empty{}, grpc.Trailer(&trailer)); err != nil {
			fail("EmptyCall: %v", err)
		}
		if got := trailer.Get("x-seen"); len(got) != 1 || got[0] != "Bearer "+strings.Repeat("*", len(secret)) {
			fail("the trailer is %q", got)
		}
	},
	"denied": func(ctx context.Context, cc *grpc.ClientConn) {
		err := cc.Invoke(ctx, "/not.allowed/At/All", &testgrpc.Empty{}, &testgrpc.Empty{})
		if code := status.Code(err); code != codes.PermissionDenied || !strings.Contains(err.Error(), "operation") {
			fail("a denied call ended with %v: %v", code, err)
		}
	},
	"hundred_at_once": func(ctx context.Context, cc *grpc.ClientConn) {
		errs := make(chan error)
		for range 100 {
			go func() {
				stream, err := testgrpc.NewTestServiceClient(cc).FullDuplexCall(ctx)
				for i := 0; err == nil && i < 20; i++ {
					size := []*testgrpc.ResponseParameters{{Size: int32(100 * i)}}
					err = stream.Send(&testgrpc.StreamingOutputCallRequest{ResponseParameters: size})
					if err == nil {
						var res *testgrpc.StreamingOutputCallResponse
						if res, err = stream.Recv(); err == nil && len(res.GetPayload().GetBody()) != 100*i {
							err = errors.New("a message of another size")
						}
					}
				}
				errs <- errors.Join(err, stream.CloseSend())
			}()
		}
		for range 100 {
			if err := <-errs; err != nil {
				fail("a stream: %v", err)
			}
		}
	},
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// runGRPC is a client's program: it knows HTTPS_PROXY, the session's CA
// and the origin's name, and has a token that is worth nothing.
func runGRPC(name string) int {
	pem, err := os.ReadFile(os.Getenv("PROTOCOL_CA"))
	if err != nil {
		fail("%v", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	cc, err := grpc.NewClient(hostGRPC+":443",
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})),
		grpc.WithPerRPCCredentials(placeholder{}))
	if err != nil {
		fail("%v", err)
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	interopCases[name](ctx, cc)
	return 0
}

type placeholder struct{}

func (placeholder) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer placeholder"}, nil
}
func (placeholder) RequireTransportSecurity() bool { return true }

func TestGRPCGoInteroperates(t *testing.T) {
	for name := range interopCases {
		t.Run(name, func(t *testing.T) { shared.interop(t, name) })
	}
}

// interop runs one case in a process of its own.
func (s *session) interop(t *testing.T, name string) {
	t.Helper()
	self, err := os.Executable()
	must.Do(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "PROTOCOL_CLIENT="+name, "PROTOCOL_CA="+s.CAFile, "HTTPS_PROXY="+s.ProxyURL,
		"NO_PROXY=", "no_proxy=", "GORACE=atexit_sleep_ms=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

func TestACancelledGRPCStreamEndsAtTheServer(t *testing.T) {
	gone := origin.gone.Load()
	const path = "/grpc.testing.TestService/FullDuplexCall"
	began := time.Now()
	shared.interop(t, "cancel_after_first_response")
	harness.WaitFor(t, "the server is told", func() bool { return origin.gone.Load() > gone })
	if r := shared.row(t, path, began); r["reason"] != "response_not_delivered" || r["operation"] != "grpc" ||
		r["http_version"] != "HTTP/2.0" {
		t.Errorf("the row is %v", r)
	}
}

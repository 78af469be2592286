package app

import (
	"net"
	"testing"

	"belfry/test/kit"
	"belfry/test/kit/tlskit"
)

// A connection that is made while belfry starts waits for the certificates: until then it is not known whether it may
// be served without TLS.
func TestNoConnectionIsServedBeforeTheCertificatesAreThere(t *testing.T) {
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	tlskit.WriteValid(t, p.path("cert.pem"), p.path("key.pem"), "app.example.com")
	p.config = p.load(overTLS)
	listened := false
	a := p.startWith(nil, func(a *App) {
		if a.HTTPAddress() == "" || listened {
			return
		}
		listened = true
		accepted := make(chan struct{})
		go func() {
			c, err := net.Dial("tcp", a.HTTPAddress())
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			close(accepted)
			_, _ = c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"))
			reply := make([]byte, 200)
			if n, _ := c.Read(reply); string(reply[:n]) != "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP "+
				"request to an HTTPS server.\n" {
				t.Errorf("it is served without TLS: %q", reply[:n])
			}
		}()
		<-accepted
	})
	p.stop(a)
}

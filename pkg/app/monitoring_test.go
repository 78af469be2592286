package app

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/app/examine"
	"belfry/pkg/app/plan"
	"belfry/test/kit"
	"belfry/test/kit/tlskit"
)

var describedMetric = regexp.MustCompile(`fqName: "([^"]+)".*constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)

// described returns the labels of all metrics that a belfry has at /metrics: what collectors describe, and what the
// page has, of which some are of libraries.
func (p *place) described(a *App) map[string][]string {
	p.Helper()
	all := map[string][]string{}
	descs := make(chan *prometheus.Desc)
	go func() {
		a.wiring.metrics.Registry.Describe(descs)
		a.wiring.metrics.Asked.Describe(descs)
		close(descs)
	}()
	for d := range descs {
		if m := describedMetric.FindStringSubmatch(d.String()); m != nil {
			for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
				labels := append([]string{"le"}, strings.Split(m[3], ",")...)
				for constant := range strings.SplitSeq(m[2], ",") {
					name, _, _ := strings.Cut(constant, "=")
					labels = append(labels, name)
				}
				all[m[1]+suffix] = labels
			}
		}
	}
	for line := range strings.Lines(p.metrics(a)) {
		if name := strings.TrimSpace(strings.SplitN(line, " ", 2)[0]); !strings.HasPrefix(name, "#") &&
			!strings.Contains(name, "{") && all[name] == nil {
			all[name] = []string{""}
		}
	}
	return all
}

// Dead letters are in the metrics, by listener.
func TestDeadLettersAreInTheMetrics(t *testing.T) {
	p := newPlace(t, strings.Replace(books, "stores:", "metrics: {listen: '127.0.0.1:0'}\nstores:", 1))
	a := p.start()
	if text := p.metrics(a); strings.Contains(text, "belfry_dead_letters{") {
		t.Errorf("without dead letters there are %s", text)
	}
	ctx := t.Context()
	for range 2 {
		if _, err := a.Bus().JetStream().Publish(ctx, "dead.thumbnails", []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	kit.WaitFor(t, "dead letters are counted", func() bool {
		return strings.Contains(p.metrics(a), "\nbelfry_dead_letters{listener=\"thumbnails\"} 2\n")
	})
}

// The machine of a process is in its metrics: its version, its disks, and what it serves.
func TestTheMachineIsInTheMetrics(t *testing.T) {
	p := newPlace(t, "")
	until := time.Now().Add(72 * time.Hour).Truncate(time.Second)
	tlskit.Write(t, p.path("cert.pem"), p.path("key.pem"), time.Now().Add(-time.Hour), until, "localhost")
	elsewhere := t.TempDir()
	p.config = p.load("listen: 127.0.0.1:0\nbus: {listen: \"\"}\nmetrics: {listen: '127.0.0.1:0'}\nhttp: {tls: " +
		"{cert: cert.pem, key: key.pem}}\nbinaries: {files: {type: FileStorage, folder: " + elsewhere +
		", map: {Books: cover}}}\nstores: {Books: {policy: owner}}\n")
	a := p.start()
	text := p.metrics(a)
	for _, want := range []string{
		"belfry_build_info{version=\"" + plan.Version() + "\"} 1\n", "\nbelfry_disk_free_bytes{folder=\"data\"} ",
		"\nbelfry_disk_size_bytes{folder=\"binaries files\"} ",
		fmt.Sprintf("\nbelfry_certificate_expiry_timestamp_seconds{certificate=\"http.tls\"} %v\n",
			float64(until.Unix())),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
	for _, of := range []string{"one", "two"} {
		if err := os.MkdirAll(p.path("acme/certificates/"+of+"/x.example"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tlskit.Write(t, p.path("acme/certificates/one/x.example/x.example.crt"), p.path("key2.pem"),
		time.Now().Add(-time.Hour), until, "x.example")
	tlskit.Write(t, p.path("acme/certificates/two/x.example/x.example.crt"), p.path("key3.pem"),
		time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "x.example")
	if last := examine.Latest(examine.AcmeFiles(p.path("acme"), "x.example")); last == nil ||
		!last.NotAfter.Equal(until) {
		t.Errorf("the latest certificate is %+v", last)
	}
}

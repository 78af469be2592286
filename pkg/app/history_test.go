package app

import (
	"strings"
	"testing"
)

func TestTheSystemOfABelfryIsRead(t *testing.T) {
	p := newPlace(t,
		managed+"metrics: {listen: \"127.0.0.1:0\"}\nmailers: {default: {type: smtp, host: localhost, user: u, "+
			"password: 0123456789abcdef}}\n")
	a := p.start()
	p.want(a, "GET", "/healthz", "", 200)
	s := a.console().System
	checks := s.Checks(t.Context())
	names := ""
	for _, c := range checks {
		names += c.Name + ", "
		if !c.OK {
			t.Errorf("%+v", c)
		}
	}
	if names != "Backend default, Bus, Listeners, Outbox, " {
		t.Error(names)
	}
	if disks := s.Disks(); len(disks) != 1 || disks[0].Total <= 0 || disks[0].Free > disks[0].Total {
		t.Errorf("disks %+v", disks)
	}
	if text := s.Config(); strings.Contains(text, "0123456789abcdef") ||
		!strings.Contains(text, "postValidation: true") {
		t.Error(text)
	}
	if charts := s.Charts(); len(charts) < 3 {
		t.Errorf("%+v", charts)
	}
	// All metrics are served still, those for which backends are asked included.
	if text := p.metrics(a); !strings.Contains(text, "belfry_objects{") ||
		!strings.Contains(text, "belfry_http_requests_total{") {
		t.Error(text)
	}
}

package route

import (
	"log/slog"
	"testing"

	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// The users of the nats.conf that belfry ships may share targets: workers, and processes that are everything.
func TestTheUsersOfNatsConfShareTargets(t *testing.T) {
	t.Setenv("BELFRY_NATS_NAME", "test")
	t.Setenv("BELFRY_NATS_STORE", t.TempDir())
	for _, user := range []string{"FRONT", "WORKER", "ALL", "LISTENER", "OBSERVER", "CLIENT", "ADMIN", "SYSTEM"} {
		t.Setenv("BELFRY_"+user+"_PASSWORD", "pw")
	}
	url := natsserver.ServeFile(t, "../../../nats.conf").ClientURL()
	log := &kit.Tail{}
	as := func(user string) *process {
		return start(t, "nats://"+user+":pw@"+url[len("nats://"):],
			func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	}
	worker, all := as("worker"), as("belfry")
	together(t, worker, all)
	for _, p := range []*process{worker, all} {
		if err := wait(t, p.forward(t)); err != nil {
			t.Error(err)
		}
	}
	if text := log.String(); text != "" {
		t.Error(text)
	}
}

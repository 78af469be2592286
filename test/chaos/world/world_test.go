package world

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"belfry/test/kit"
)

const served = `stores:
  Parents: {expose: {}}
  Children:
    expose: {}
    map: {Parents: {key: parent, target: children, fields: title, cascade: true}}
`

// create creates a child of parent p through a front.
func create(t *testing.T, front, uuid string) {
	t.Helper()
	client := &http.Client{Timeout: kit.Limit}
	kit.WaitUntil(t, func() error {
		res, err := client.Post(front+"/children", "application/json",
			strings.NewReader(fmt.Sprintf(`{"uuid":%q,"parent":"p","title":"t"}`, uuid)))
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusCreated && res.StatusCode != http.StatusConflict {
			return fmt.Errorf("creating %s: %s", uuid, res.Status)
		}
		return nil
	})
}

// copies waits until parent p has so many copies.
func copies(t *testing.T, front string, want int) {
	t.Helper()
	kit.WaitUntil(t, func() error {
		res, err := http.Get(front + "/parents/p")
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		var p struct{ Children []any }
		if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
			return err
		}
		if len(p.Children) != want {
			return fmt.Errorf("%s, %d copies, want %d", res.Status, len(p.Children), want)
		}
		return nil
	})
}

// After each fault every front serves again, what was written before and during it is there, and copies are
// complete. Each round is another kind of world.
func TestSoakEveryWorldRecoversFromEveryFault(t *testing.T) {
	soak := kit.Soak(t, 1)
	for soak.More() {
		kind := Kinds()[soak.Seed()%uint64(len(Kinds()))]
		t.Run(string(kind), func(t *testing.T) { recovers(t, kind, soak.Rand()) })
	}
}

func recovers(t *testing.T, kind Kind, r *rand.Rand) {
	t.Helper()
	w := Start(t, kind, served, false)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.Logs())
		}
	})
	for _, missing := range w.Missing() {
		t.Log("not here:", missing)
	}
	d := w.Deployment()
	res, err := http.Post(d.Fronts[0]+"/parents", "application/json", strings.NewReader(`{"uuid":"p"}`))
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatal(res, err)
	}
	_ = res.Body.Close()
	count := 0
	for _, n := range append(w.Nemeses(), w.LogLoss()) {
		ctx, cancel := context.WithTimeout(t.Context(), kit.Limit)
		heal, err := n.Inject(ctx, r)
		if err != nil {
			t.Fatalf("%s: %v", n.Name, err)
		}
		if err := heal(ctx); err != nil {
			t.Fatalf("the end of %s: %v", n.Name, err)
		}
		if err := w.Ready(ctx); err != nil {
			t.Fatalf("after %s: %v", n.Name, err)
		}
		cancel()
		t.Log(n.Name)
		for _, front := range d.Fronts {
			create(t, front, fmt.Sprint("c", count))
			count++
		}
		copies(t, d.Fronts[0], count)
		for _, end := range w.Ends() {
			t.Log(end)
		}
	}
	cmd := exec.Command(w.programs.belfry, "verify", "--config", d.Config)
	cmd.Env = d.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if err := w.Stop(); err != nil {
		t.Error(err)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// The load of the containers.
const (
	containerFill = 20_000 // objects before the measurement
	containerTime = 15 * time.Second
	containerGoal = 1_000 // requests a second with containerAt MiB
	containerAt   = 256
)

// containerPoint is what was measured with a limit of memory.
type containerPoint struct {
	Part    string  `json:"part"`
	Backend string  `json:"backend"` // the server
	Memory  int     `json:"memory"`  // MiB
	Rate    float64 `json:"rate"`    // requests a second; 0: the kernel ended it
}

// containers measures a mix of requests to belfry and to PocketBase, each in a control group with little memory.
func (b *bench) containers(ctx context.Context) error {
	for _, mib := range []int{128, 192, 256, 512, 1024} {
		for _, name := range []string{"belfry", peerPocketBase} {
			rate, peak, err := b.contained(ctx, name, mib)
			if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
				fmt.Printf("control groups can't be made here, so nothing is measured with little memory: %v\n", err)
				return nil
			}
			says := fmt.Sprintf("%.0f requests/s, at most %d MB resident", rate, peak>>20)
			if err != nil {
				rate, says = 0, "ended: "+err.Error()
			}
			if name == "belfry" && mib == containerAt {
				says += fmt.Sprintf(" (goal %d/s): %s", containerGoal, verdict(rate >= containerGoal))
			}
			fmt.Printf("%5d MiB: %-10s %s\n", mib, name, says)
			b.points = append(b.points, containerPoint{"containers", name, mib, rate})
		}
	}
	return b.writePoints()
}

// contained starts a server with a limit of memory, and returns the rate of a mix of requests.
func (b *bench) contained(ctx context.Context, name string, mib int) (rate float64, peak int64, err error) {
	group, err := newControlGroup(name, mib)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, group.remove()) }()
	b.prefix = group.prefix()
	defer func() { b.prefix = nil }()
	p, err := servePeer(ctx, b, name)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if stopped := p.stop(); err == nil {
			err = stopped
		}
	}()
	if _, err := closedLoop(p.base, connections, containerFill, p.create("m0")); err != nil {
		return 0, p.status("VmHWM"), err
	}
	r, err := loopsFor(containerTime, p.base, connections, peerMost, func(c *client, i int) error {
		switch i % 10 {
		case 0, 1:
			return p.create("m1")(c, i)
		case 2, 3:
			return p.listSome(c)
		default:
			return expect(c, 200, "GET", p.items+"/"+peerID("m0", rand.IntN(containerFill)), nil)
		}
	})
	return r.rate(), p.status("VmHWM"), err
}

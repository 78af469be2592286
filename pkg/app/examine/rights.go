package examine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/count"
	"belfry/pkg/bus"
	"belfry/pkg/operations/doctor"
)

// asRolesSay is the remedy for a missing permission of a user.
const asRolesSay = "give it the permissions of FRONT, WORKER or ALL in nats.conf, and reload the NATS server"

// workRights are requests on the subjects that a worker publishes on, which have no effect: the server refuses them, or
// nobody subscribes to them.
func workRights(worker string) (all []*nats.Msg) {
	for _, stream := range []string{bus.StreamEvents, bus.StreamRetry} {
		next := nats.NewMsg(apiPrefix + ".CONSUMER.MSG.NEXT." + stream + "." + worker)
		next.Data = []byte("{") // a request that can't be read
		all = append(all, next, nats.NewMsg("$JS.ACK."+stream+"."+worker+".doctor"))
	}
	return append(all, refusedBy(nats.NewMsg(bus.DeadPrefix+worker)))
}

// refusedBy is a message that no stream stores, since it names another one.
func refusedBy(m *nats.Msg) *nats.Msg {
	m.Header.Set(jetstream.ExpectedStreamHeader, "belfry-doctor")
	return m
}

// may reports whether the user of the bus may publish on the subject of a message.
func may(ctx context.Context, b AskedBus, m *nats.Msg) (bool, error) {
	ctx, stop := b.UntilDenied(ctx, m.Subject)
	defer stop()
	_, err := b.Conn().RequestMsgWithContext(ctx, m)
	if subject, denied := deniedOf(ctx, err); denied && subject == m.Subject {
		return false, nil
	}
	if errors.Is(err, nats.ErrNoResponders) {
		err = nil
	}
	return err == nil, err
}

// AskWork reports the permissions that a user of the bus lacks for the work of belfry's own listeners. A user without
// any of them is that of a front, unless the process here has to do this work.
func (x *BusExamination) AskWork(ctx context.Context, b AskedBus) (all []doctor.Finding, err error) {
	able := 0
	for _, worker := range x.Workers {
		var lacks []string
		rights := workRights(worker)
		for _, m := range rights {
			is, err := may(ctx, b, m)
			if err != nil {
				return all, err
			}
			if !is {
				lacks = append(lacks, m.Subject)
			}
		}
		switch {
		case len(lacks) == 0:
			able++
		case x.Serves || len(lacks) < len(rights):
			all = append(all,
				doctor.Finding{Level: doctor.Problem, Name: "bus.mayNotWork", Subject: "listener " + worker,
					Says: "the bus's user " + x.User + " lacks " +
						count.Noun(len(lacks), "the permission", "the permissions") + " for " +
						strings.Join(lacks, ", ") + ": it can't receive or settle events", Do: asRolesSay})
		}
	}
	if len(all) == 0 && able > 0 {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "bus.works",
			Says: "the user may do the work of " + count.Of(able, "listener") + " of belfry"})
	}
	return all, nil
}

// readByAll are the subjects of requests without which no process of belfry can use the bus.
var readByAll = []string{
	apiPrefix + ".STREAM.INFO." + bus.StreamEvents, apiPrefix + ".STREAM.INFO." + bus.StreamDead,
	apiPrefix + ".STREAM.INFO." + bus.StreamRetry,
}

// busDenied names the finding about what the user of the bus may not see.
const busDenied = "bus.denied"

// denied is the finding about a permission that the user of the bus lacks.
func (x *BusExamination) denied(what, subject string) doctor.Finding {
	if x.Own && slices.Contains(readByAll, subject) {
		return doctor.Finding{Level: doctor.Problem, Name: "bus.mayNotRead", Subject: what,
			Says: "the bus's user " + x.User + " lacks the permission for " + subject +
				", without which no belfry can use the bus", Do: asRolesSay}
	}
	says := "the bus's user " + x.User + " may not see it"
	if subject != "" {
		says += ": it lacks the permission for " + subject
	}
	do := "use the admin of the bus: belfry doctor --user admin, with the password in BELFRY_BUS_PASSWORD"
	if !x.Own {
		do = "use another user with --user, or give this one the permission"
	}
	return doctor.Finding{Level: doctor.Unseen, Name: busDenied, Subject: what, Says: says, Do: do}
}

// joined merges findings that are due to the same denied permission.
func joined(all []doctor.Finding) (some []doctor.Finding) {
	for _, f := range all {
		i := slices.IndexFunc(some, func(s doctor.Finding) bool { return s.Name == f.Name && s.Says == f.Says })
		if i >= 0 && (f.Name == busDenied || f.Name == "bus.mayNotRead") {
			some[i].Subject += ", " + f.Subject
			continue
		}
		some = append(some, f)
	}
	return some
}

// WhatWorkers is the subject of the check of what workers may do on the bus.
const WhatWorkers = "what workers may do"

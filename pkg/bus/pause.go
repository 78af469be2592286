package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/backoff"
)

// clockSkew is how far the clocks of a server and a client may differ.
const clockSkew = time.Minute

// Paused reports whether somebody has paused a consumer. An ordered listener pauses one of its own while it handles a
// retry, for twice the time that its events may take, again and again, which no other pause does.
func Paused(info *jetstream.ConsumerInfo, ordered bool) bool {
	own := time.Duration(0)
	if ordered {
		own = 2*info.Config.AckWait + clockSkew
	}
	return info.Paused && info.PauseRemaining > own
}

// resumeAfter is how long a pause that Resume ends continues: enough for the request to arrive before it is over.
const resumeAfter = 100 * time.Millisecond

// Resume ends the pause of a consumer. A server that resumes one on request does not look for its events until somebody
// requests further ones, or a request expires. It does look when a pause is over, so Resume has the pause end in a
// moment, by the server's clock, and waits for that.
func Resume(ctx context.Context, js jetstream.JetStream, stream, consumer string) error {
	c, err := js.Consumer(ctx, stream, consumer)
	if err != nil { // it may be one that pushes, which only this resumes
		_, err = js.ResumeConsumer(ctx, stream, consumer)
		return err
	}
	left, err := js.PauseConsumer(ctx, stream, consumer, c.CachedInfo().TimeStamp.Add(resumeAfter))
	if err != nil {
		return err
	}
	return backoff.Sleep(ctx, left.PauseRemaining)
}

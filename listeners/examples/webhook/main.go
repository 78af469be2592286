// Command webhook posts events to a URL, each signed by the Standard Webhooks
// convention, and retries until the receiver accepts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// The environment. A URL may be a secret too, and then it had better not be
// among the arguments, which every user of a machine can see.
const (
	envURL    = "WEBHOOK_URL"
	envSecret = "WEBHOOK_SECRET" //nolint:gosec // a name, no secret
)

const (
	concurrency = 4
	firstDelay  = time.Second
	maxDelay    = 10 * time.Minute
	ackWait     = 5 * time.Second // after which the events in flight of a killed process are redelivered
)

func main() {
	name := flag.String("name", "webhook", "name of the listener: one for each receiver")
	to := flag.String("url", "", "where events are posted to; without it "+envURL)
	events := flag.String("events", "", "names of events, separated by commas; all without it")
	stores := flag.String("stores", "", "names of stores, separated by commas; all without it")
	timeout := flag.Duration("timeout", 15*time.Second, "what a post may take")
	giveUp := flag.Duration("give-up", 72*time.Hour, "age of an event at which a post that fails was the last")
	allowHTTP := flag.Bool("allow-http", false, "allow a URL that is not https")
	allowPrivate := flag.Bool("allow-private", false, "allow addresses of this machine and of private networks")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q: there are flags alone\n", flag.Arg(0))
		os.Exit(2)
	}
	if *to == "" {
		*to = os.Getenv(envURL)
	}
	target, err := checkURL(*to, *allowHTTP)
	if err != nil {
		usage(err)
	}
	sign, err := newSigner(os.Getenv(envSecret))
	if err != nil {
		usage(err)
	}
	stopping, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(stopping, release)
	r := &receiver{url: target, sign: sign, client: newClient(*timeout, *allowPrivate), giveUp: *giveUp,
		stopping: stopping}
	listener.Main(listener.Spec{
		Name:        *name,
		Events:      list[event.Name](*events),
		Stores:      list[string](*stores),
		Handler:     r.handle,
		Concurrency: concurrency,
		AckWait:     ackWait,
		Backoff:     listener.ExponentialBackoff(firstDelay, maxDelay),
	})
}

func usage(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

// checkURL rejects URLs that are not safe to post to. The error does not contain
// the URL.
func checkURL(text string, allowHTTP bool) (string, error) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return "", errors.New("no URL: set -url or " + envURL)
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "", errors.New("the URL is not an https URL")
	case u.Scheme == "http" && !allowHTTP:
		return "", errors.New("the URL is not https, so events could be read on the network; -allow-http allows it")
	case u.User != nil:
		return "", errors.New("the URL has a user in it, which is not used: the signature identifies the sender")
	}
	return u.String(), nil
}

func list[T ~string](text string) []T {
	var all []T
	for each := range strings.SplitSeq(text, ",") {
		if each = strings.TrimSpace(each); each != "" {
			all = append(all, T(each))
		}
	}
	return all
}

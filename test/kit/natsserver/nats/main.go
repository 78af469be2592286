// Command nats runs a NATS server of the version that belfry embeds, with a configuration file, until it
// is interrupted. Tests kill it.
package main

import (
	"fmt"
	"os"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		os.Exit(1)
	}
}

func serve(files []string) error {
	if len(files) != 1 {
		return fmt.Errorf("expected the configuration file, not %q", files)
	}
	options, err := server.ProcessConfigFile(files[0])
	if err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		return err
	}
	s.WaitForShutdown()
	return nil
}

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"capstan/internal/app"
)

func newTrust() *cobra.Command {
	return &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Trust a folder: its own settings, servers, hooks and agents are used from now on",
		Long: `Remembers that you trust a folder and all that lies in it. Until then a folder's
.capstan/settings.json counts only where it denies or asks. Without DIR it is the
workspace around the working directory. --trust does the same for one run.`,
		Args: arguments(0, 1, "one directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := os.Getwd()
			if err != nil {
				return failed(err)
			}
			if len(args) == 1 {
				dir = args[0]
			}
			trusted, err := app.Trust(dir, len(args) == 0)
			if err != nil {
				return opening(err)
			}
			fmt.Printf("%s is trusted.\n", trusted)
			return nil
		},
	}
}

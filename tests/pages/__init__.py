"""The pages of the documentation, followed as a reader would: every block runs, and a test says which one did not.

What a block is, its first words say:

- any language with `title="NAME"`: it is written to the file NAME;
- `console`: commands behind `$ ` (a line that ends in a backslash goes on), each followed by what it prints, standard
  error included. `…` stands for any text in a line, a line of `…` alone for any number of lines. A command ends with
  exit code 0, unless `# exit code N` stands behind it;
- `console title="second terminal"`: one command, in a shell of its own, that goes on running; what it shows must appear
  before the next block is done;
- `sh`: commands whose output does not matter, only that they end with exit code 0 (or with `# exit code N`);
- `python`: a program, run;
- `yaml`: a configuration goes to `kubeauthn check`, a kubeconfig, kuberc, suite or list of revocations to what reads it
  here, a workflow's or hook's commands to our own parsers (`kinds.py`);
- `json`, `toml`, `nginx`, `haproxy`: to their reader.

A block of any other kind is an error: nothing runs it. The line before a block may say more:

- `<!-- needs: PROGRAM … -->`: parts of scripts/system-parts.txt; without them the page is left out (in CI it fails);
- `<!-- first: COMMANDS -->`: what a reader of this page has done already; may have several lines;
- `<!-- run by: tests/… -->`: that test reads this page and runs the block, in its own way;
- `<!-- not run: REASON -->`, one of `REASONS`, each with what is checked all the same.

The tutorials begin in an empty folder. Every other page begins on the stage of `stage.py`: a home with a kubeconfig, a
cluster behind it, and the files that the pages name.
"""

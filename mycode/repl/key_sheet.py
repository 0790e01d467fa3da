"""What each key does, in words, for whoever asks with `?`."""

SHEET = """\
Enter            send; while the agent works: queue
Ctrl-J           new line (also Alt-Enter, or a backslash before Enter)
Esc              interrupt; what was done so far is kept
Esc Esc          clear the draft; on an empty line: go back to before a turn
Up               on an empty line: take the last queued prompt back; else earlier prompts
Ctrl-R           search earlier prompts
Tab              complete /commands, their arguments and @files
Shift-Tab        next permission mode
Ctrl-O           show the last tool output whole
Ctrl-T           show the todo list
Ctrl-G           write in an external editor (also Ctrl-X Ctrl-E)
Ctrl-L           clear the screen
Ctrl-C           interrupt or clear; twice on an empty line: leave
Ctrl-D           leave
/                a command (/help lists them)
!                run a shell command yourself
@                name a file
?                this sheet"""

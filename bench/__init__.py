"""Speed, measured beside what it is compared with, in one run."""

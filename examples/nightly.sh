#!/bin/sh
# A nightly job that cron starts on each host of a fleet, and that one host runs. All hosts use the same SIGNALBOX_URL:
#
#     0 3 * * * SIGNALBOX_URL=redis://redis.example sh /opt/nightly.sh /var/backups
set -eu

: "${SIGNALBOX_URL:?must be the URL of the engine that the hosts share}"
target=${1:?must be the folder for backups}

# If this host dies, another one runs the job, with a greater token and so another file name.
signalbox run --lock nightly-backup --once-per 1d -- sh -c '
  file=$1/backup-$SIGNALBOX_TOKEN
  date > "$file.new"
  mv "$file.new" "$file"
  echo "wrote $file"
' job "$target"

#!/bin/sh
# A nightly job that cron starts on each host of a fleet, and that one host does. All hosts use the same SIGNALBOX_URL:
#
#     0 3 * * * SIGNALBOX_URL=redis://redis.example sh /opt/nightly.sh /var/backups
set -eu

: "${SIGNALBOX_URL:?is the URL of the engine that the hosts share}"
target=${1:?is the folder for backups}

# Another host does the job if this one dies. The job gets a greater token then, so its file has another name.
signalbox run --lock nightly-backup --once-per 1d -- sh -c '
  file=$1/backup-$SIGNALBOX_TOKEN
  date > "$file.new"
  mv "$file.new" "$file"
  echo "wrote $file"
' job "$target"

#!/usr/bin/env node
import { EXIT } from './exit-status.js'
import { complaint } from './failure.js'
import { signalbox } from './signalbox.js'

const unread = new AbortController()

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever reads the output may have had enough, as `head` has; that is no failure of this command.
  if (error.code === 'EPIPE') return unread.abort()
  process.stderr.write(complaint(error))
  process.exit(EXIT.failed)
})

const { stdout, stderr } = process
process.exitCode = await signalbox(process.argv.slice(2), {
  // Only commands that read touch it: it is opened by being looked at.
  get stdin() {
    return process.stdin
  },
  stdout,
  stderr,
  unread: unread.signal,
})

#!/usr/bin/env node
import { EXIT } from './exit-status.js'
import { complaint } from './failure.js'
import { signalbox } from './signalbox.js'

/** So long a connection may take to end: milliseconds. */
const REST = 1000

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
// A client package that did not get through may try on for a minute; all that was said is out by then.
stdout.write('', () => setTimeout(() => process.exit(), REST).unref())

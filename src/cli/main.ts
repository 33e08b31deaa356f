import type { Application } from './application.js'
import { EXIT } from './exit-status.js'
import { errorLine } from './failure.js'
import { signalbox } from './signalbox.js'

/** Maximum time for a connection to close, in milliseconds. */
const CLOSE_TIMEOUT = 1000

/** Runs the command line of this process, and ends the process. */
export async function main(applications: readonly Application[]): Promise<void> {
  const { stdout, stderr } = process
  const unread = new AbortController()
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader such as `head` may close the pipe early; that is not a failure of this command.
    if (error.code === 'EPIPE') return unread.abort()
    stderr.write(errorLine(error))
    process.exit(EXIT.failed)
  })
  const terminal = {
    // Lazy, because the first access opens it.
    get stdin() {
      return process.stdin
    },
    stdout,
    stderr,
    unread: unread.signal,
  }
  process.exitCode = await signalbox(process.argv.slice(2), terminal, applications)
  // A client package that could not connect may retry for a minute; all output is written by then.
  stdout.write('', () => setTimeout(() => process.exit(), CLOSE_TIMEOUT).unref())
}

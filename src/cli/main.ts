import type { Application } from './application.js'
import { EXIT } from './exit-status.js'
import { complaint } from './failure.js'
import { signalbox } from './signalbox.js'

/** So long a connection may take to end: milliseconds. */
const REST = 1000

/**
 * Carries out the command line of this process, and ends it.
 * @param applications further subcommands.
 */
export async function main(applications: readonly Application[]): Promise<void> {
  const { stdout, stderr } = process
  const unread = new AbortController()
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The reader of the output may have had enough, as `head` has; that is no failure of this command.
    if (error.code === 'EPIPE') return unread.abort()
    stderr.write(complaint(error))
    process.exit(EXIT.failed)
  })
  const terminal = {
    // Only commands that read touch it: it is opened by being looked at.
    get stdin() {
      return process.stdin
    },
    stdout,
    stderr,
    unread: unread.signal,
  }
  process.exitCode = await signalbox(process.argv.slice(2), terminal, applications)
  // A client package that did not get through may try on for a minute; all that was said is out by then.
  stdout.write('', () => setTimeout(() => process.exit(), REST).unref())
}

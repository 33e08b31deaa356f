import { Command, CommanderError, InvalidArgumentError as InvalidOption } from 'commander'
import { InvalidArgumentError } from 'signalbox'
import { failureText, withoutSecrets } from 'signalbox/reports'

/** Returns a command line that throws instead of ending the process, and that hides passwords in its errors. */
export function applicationCommand(name: string): Command {
  return new Command(name)
    .allowExcessArguments(false)
    .configureOutput({ writeErr: text => process.stderr.write(withoutSecrets(text)) })
    .exitOverride()
}

/** Runs an application and returns its exit status. If it fails, prints the error and returns the status for it. */
export async function exitStatusOf(
  run: () => Promise<number>,
  status: { readonly usage: number; readonly failed: number },
): Promise<number> {
  // Runs before the listener of `signalbox`, which exits with another status.
  process.stdout.prependListener('error', (error: NodeJS.ErrnoException) => {
    // A reader that stops early, such as `head`, does not end the run.
    if (error.code === 'EPIPE') return
    process.stderr.write(`error: can't write to standard output: ${error.message}\n`)
    process.exit(status.failed)
  })
  ignoreErrors(process.stderr)
  try {
    return await run()
  } catch (error) {
    // Commander has already printed the error or the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : status.usage
    process.stderr.write(`error: ${failureText(error)}\n`)
    return error instanceof InvalidArgumentError ? status.usage : status.failed
  }
}

/** Ignores errors of writing to a stream of messages, because there is no other place to report them. */
export function ignoreErrors(stream: NodeJS.WriteStream): void {
  stream.on('error', () => undefined)
}

/** Returns a parser for an option that is an integer from `min` to `max`. */
export function integer(min: number, max: number): (text: string) => number {
  return text => {
    const number = /^\d{1,10}$/.test(text) ? Number(text) : NaN
    if (number >= min && number <= max) return number
    throw new InvalidOption(`It must be an integer from ${min} to ${max}.`)
  }
}

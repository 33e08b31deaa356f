import { createRequire } from 'node:module'
import { Command, CommanderError } from 'commander'
import { EXIT, EXIT_TEXT } from './exit-status.js'
import { complaint, statusOf } from './failure.js'
import { addLs } from './ls.js'
import { addMutex } from './mutex.js'
import { addRelease } from './release.js'
import { addRevoke } from './revoke.js'
import type { Terminal } from './terminal.js'
import { addTrains } from './trains.js'

const { version } = createRequire(import.meta.url)('signalbox/package.json') as { version: string }

/**
 * Carries out a command line, without `node` and the script, and gives its exit status. Every complaint is one line on
 * `stderr`.
 */
export async function signalbox(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    await program(terminal).parseAsync(args, { from: 'user' })
    return EXIT.fine
  } catch (error) {
    // Commander has said already what is wrong, or has printed the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage
    terminal.stderr.write(complaint(error))
    return statusOf(error)
  }
}

function program({ stdout, stderr }: Terminal): Command {
  const command = new Command('signalbox')
    .description('Looks after the locks of other processes, drives trains, and shows a mutex at work.')
    .version(version)
    .addHelpText('after', EXIT_TEXT)
    .exitOverride()
    .enablePositionalOptions()
    .configureOutput({
      writeOut: text => void stdout.write(text),
      writeErr: text => void stderr.write(text),
      outputError: (text, write) => write(complaint(new Error(sentence(text)))),
    })
  addLs(command, stdout)
  addRelease(command, stdout)
  addRevoke(command, stdout)
  addTrains(command)
  addMutex(command)
  return command
}

/** A complaint of commander's without what begins it and with its suggestion on the same line. */
function sentence(text: string): string {
  return text
    .replace(/^error: /, '')
    .trim()
    .replaceAll('\n', ' ')
}

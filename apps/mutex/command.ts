import type { Command } from 'commander'
import { applicationCommand, exitStatusOf } from '../command-line.js'
import { demo } from './demo.js'

/** Exit statuses of the demo. */
const EXIT = { fine: 0, failed: 1, usage: 2 } as const

/** Returns the command line of the mutex demo. */
export function mutexCommand(): Command {
  return applicationCommand('signalbox mutex')
    .description(
      'Run ten tasks at once, first without a mutex, then with one. Then let a lease expire, and release the lock in ' +
        'two ways: an unconditional delete frees the lock of the next holder, a checked release does not.',
    )
    .option('--engine <url>', 'where the mutex lives', 'file:./.signalbox/mutex')
    .addHelpText(
      'after',
      "\nExit status:\n  0  done\n  1  the engine can't be used\n  2  the command line can't be used",
    )
}

/** Executes the command line of the mutex demo and returns its exit status. */
export async function mutex(args: readonly string[]): Promise<number> {
  return exitStatusOf(async () => {
    const { engine } = mutexCommand().parse(args, { from: 'user' }).opts<{ engine: string }>()
    await demo(shared(engine), line => void process.stdout.write(`${line}\n`))
    return EXIT.fine
  }, EXIT)
}

/** Returns the URL to open. Replaces `memory:` with a named memory, which all services of the demo share. */
function shared(url: string): string {
  return url === 'memory:' ? 'memory:mutex-demo' : url
}

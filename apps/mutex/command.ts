import { Command, CommanderError } from 'commander'
import { InvalidArgumentError } from 'signalbox'
import { demo } from './demo.js'

/** How the demo ends. */
const EXIT = { fine: 0, failed: 1, usage: 2 } as const

/** The command line of the mutex demo. */
export function mutexCommand(): Command {
  return new Command('signalbox mutex')
    .description(
      'Ten tasks at once without a mutex, then with one; then what an outlived lease does to a lock that is deleted ' +
        'unconditionally, and to one that is not.',
    )
    .option('--engine <url>', 'where the mutex lives', 'file:./.signalbox/mutex')
    .addHelpText(
      'after',
      "\nExit status:\n  0  done\n  1  the engine can't be used\n  2  the command line can't be used",
    )
    .exitOverride()
}

/** Executes the command line of the mutex demo and gives its exit status. */
export async function mutex(args: readonly string[]): Promise<number> {
  try {
    const { engine } = mutexCommand().parse(args, { from: 'user' }).opts<{ engine: string }>()
    await demo(shared(engine), line => void process.stdout.write(`${line}\n`))
    return EXIT.fine
  } catch (error) {
    // Commander has said already what is wrong, or has printed the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`)
    return error instanceof InvalidArgumentError ? EXIT.usage : EXIT.failed
  }
}

/** The memory of this process, as all services of the demo see it. */
function shared(url: string): string {
  return url === 'memory:' ? 'memory:mutex-demo' : url
}

import { createRequire } from 'node:module'
import { Command, CommanderError } from 'commander'
import { EXIT, EXIT_TEXT } from './exit-status.js'
import { errorLine, EndedWith, statusOf } from './failure.js'
import { addApplication, type Application } from './application.js'
import { addCompletion } from './completion.js'
import { addConsole } from './console.js'
import { addDoctor } from './doctor.js'
import { addGraph } from './graph.js'
import { addLead } from './lead.js'
import { addLimit } from './limit.js'
import { addLs, addShow } from './ls.js'
import { addRelease, addResume, addRevoke } from './operator.js'
import { addRun } from './run.js'
import { addSchema } from './schema.js'
import { addTop } from './top.js'
import { addCas, addGet, addPut } from './values.js'
import { addWait } from './wait.js'
import type { Terminal } from './terminal.js'

const { version } = createRequire(import.meta.url)('signalbox/package.json') as { version: string }

/**
 * Runs a command line, without `node` and the script, and returns its exit status. Every error is one line on
 * `stderr`.
 * @param applications further subcommands.
 */
export async function signalbox(
  args: readonly string[],
  terminal: Terminal,
  applications: readonly Application[] = [],
): Promise<number> {
  try {
    await program(terminal, applications).parseAsync(args, { from: 'user' })
    return EXIT.fine
  } catch (error) {
    // Commander has already printed the error or the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage
    if (!(error instanceof EndedWith)) terminal.stderr.write(errorLine(error))
    return statusOf(error)
  }
}

function program(terminal: Terminal, applications: readonly Application[]): Command {
  const { stdout, stderr } = terminal
  const command = new Command('signalbox')
    .description(
      'Runs commands under locks and limits, looks after those of other processes, and shows them at work.',
    )
    .version(version)
    .addHelpText('after', EXIT_TEXT)
    .exitOverride()
    .enablePositionalOptions()
    .configureOutput({
      writeOut: text => void stdout.write(text),
      writeErr: text => void stderr.write(text),
      outputError: (text, write) => write(errorLine(new Error(sentence(text)))),
    })
  addRun(command, terminal)
  addLead(command, terminal)
  addLimit(command, terminal)
  addLs(command, stdout)
  addShow(command, stdout)
  addTop(command, terminal)
  addGraph(command, stdout)
  addConsole(command, terminal)
  addWait(command, stdout)
  addDoctor(command, stdout)
  addSchema(command, stdout)
  addRelease(command, stdout)
  addResume(command, stdout)
  addRevoke(command, stdout)
  addGet(command, stdout)
  addPut(command, terminal)
  addCas(command, terminal)
  for (const application of applications) addApplication(command, application)
  addCompletion(command, stdout, applications)
  return command
}

/** Returns a message of commander without its prefix, and with its suggestion on the same line. */
function sentence(text: string): string {
  return text
    .replace(/^error: /, '')
    .trim()
    .replaceAll('\n', ' ')
}

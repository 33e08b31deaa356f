/** How setup starts a command, and what it says when one fails. */
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The checkout. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Something only the reader can put right; its message is all that is printed. */
export class SetupError extends Error {}

/**
 * Runs a command to its end. What it prints goes to standard error, because standard output belongs to the command
 * that setup prepares, for example to `npm start -- --json -`.
 * @param {string} command
 * @param {readonly string[]} argv
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} options
 * @throws {SetupError} when it could not start or failed
 */
export function run(command, argv, { cwd = root, env = process.env } = {}) {
  const { status, error } = spawnSync(command, argv, { cwd, env, stdio: ['ignore', 2, 2] })
  if (error !== undefined) throw new SetupError(`${command} could not start: ${error.message}`)
  if (status !== 0) throw new SetupError(`${[command, ...argv].join(' ')} failed; the lines above say why.`)
}

/**
 * Runs npm, the one that runs the present script if one does.
 * @param {...string} argv
 * @throws {SetupError} when it could not start or failed
 */
export function npm(...argv) {
  const program = process.env.npm_execpath
  const all = [...argv, '--no-audit', '--no-fund', '--loglevel=error']
  if (program?.endsWith('npm-cli.js')) run(process.execPath, [program, ...all])
  else run('npm', all)
}

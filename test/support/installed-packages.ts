import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProgram } from './run-program.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Installs the dependencies of the library and these packages for the programs of a folder. */
export function linkPackages(folder: string, packages: readonly string[]): void {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  mkdirSync(join(folder, 'node_modules'))
  for (const name of [...Object.keys(dependencies), ...packages])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
}

/** Runs a program in a folder that has only these packages and the built library. Returns its output. */
export async function runWithPackages(
  program: string,
  packages: readonly string[],
  ...args: readonly string[]
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-packages-'))
  try {
    cpSync(join(root, 'dist/src'), join(folder, 'signalbox'), { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(folder, 'program.js'), program)
    linkPackages(folder, packages)
    const { stdout } = await runProgram(process.execPath, ['program.js', ...args], {
      cwd: folder,
      timeLimit: 30_000,
    })
    return stdout.trim()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

import { packageFile } from '../../bench/package.js'

/** A program with its first arguments. */
export interface Program {
  readonly program: string
  readonly argv: readonly string[]
}

/** Returns a program of `test/interop/java`. @param main its class */
export function java(main: string): Program {
  const built = packageFile('.interop/java')
  return { program: 'java', argv: ['-cp', `${built}/lib/*:${built}/classes`, main] }
}

/** Returns a program of `test/interop/python`. @param script its file */
export function python(script: string): Program {
  return {
    program: packageFile('.interop/python/bin/python'),
    argv: [packageFile(`test/interop/python/${script}`)],
  }
}

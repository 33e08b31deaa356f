import { describe, test } from 'vitest'
import { checksOf, type Check } from '../../packages/conformance/src/checks.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { adverse, conformance } from '../../packages/conformance/src/index.js'

/**
 * Adds a test for each check that an engine must pass. A file can take one part of the checks, so that several
 * processes share the checks of a slow engine.
 */
export function contractSuite(fixture: EngineFixture, { part, of } = { part: 1, of: 1 }): void {
  const checks = conformance(fixture).filter((_, index) => index % of === part - 1)
  describe(fixture.name, () => register(checks))
}

/**
 * Adds a test for each adverse check.
 * @param left names of checks to leave out, each of which must match exactly one check
 */
export function adverseSuite(fixture: EngineFixture, left: readonly string[] = []): void {
  describe(fixture.name, () => {
    for (const check of without(adverse(fixture), left)) test(check.name, () => check.run(Infinity))
  })
}

/** Adds some groups of checks, for an engine that differs from another engine only in these. */
export function contractParts(
  fixture: EngineFixture,
  ...parts: readonly ((fixture: EngineFixture) => void)[]
): void {
  contractPartsBut(fixture, [], ...parts)
}

/**
 * Adds some groups of checks, except some checks.
 * @param left names of checks to leave out, without the name of the group; each must match exactly one check
 */
export function contractPartsBut(
  fixture: EngineFixture,
  left: readonly string[],
  ...parts: readonly ((fixture: EngineFixture) => void)[]
): void {
  const checks = checksOf(() => {
    for (const part of parts) part(fixture)
  })
  describe(fixture.name, () => register(without(checks, left)))
}

function without(checks: readonly Check[], left: readonly string[]): Check[] {
  for (const name of left) {
    if (checks.filter(check => isNamed(check, name)).length !== 1) throw new Error(`not one check is ${name}`)
  }
  return checks.filter(check => !left.some(name => isNamed(check, name)))
}

function isNamed(check: Check, name: string): boolean {
  return check.name.endsWith(` > ${name}`)
}

/** Distance between checks that start together. Adjacent checks do similar work, such as starting processes. */
const APART = 12

function register(checks: readonly Check[]): void {
  const concurrent = checks.filter(check => check.concurrent)
  const spread = Array.from({ length: APART }, (_, rest) =>
    concurrent.filter((_, index) => index % APART === rest),
  )
  // The test runner starts adjacent checks at the same time. Its settings limit their duration.
  for (const check of spread.flat()) test.concurrent(check.name, () => check.run(Infinity))
  for (const check of checks.filter(check => !check.concurrent)) test(check.name, () => check.run(Infinity))
}

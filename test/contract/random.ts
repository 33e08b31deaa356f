export * from '../../src/conformance/random.js'

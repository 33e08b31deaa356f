export * from '../../src/conformance/time.js'

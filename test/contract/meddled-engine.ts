export * from '../../src/conformance/meddled-engine.js'

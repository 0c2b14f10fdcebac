const test = require('node:test');
const assert = require('node:assert');
test('a sum', () => assert.equal(1 + 2, 3));
